@NullMarked
package dev.space.core.access;

import org.jspecify.annotations.NullMarked;
