@NullMarked
package dev.space.core.operation;

import org.jspecify.annotations.NullMarked;
