@NullMarked
package dev.space.core;

import org.jspecify.annotations.NullMarked;
