@NullMarked
package dev.space.e2b;

import org.jspecify.annotations.NullMarked;
