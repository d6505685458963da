@NullMarked
package dev.space.store;

import org.jspecify.annotations.NullMarked;
