@NullMarked
package dev.space.core.sandbox;

import org.jspecify.annotations.NullMarked;
