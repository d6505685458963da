@NullMarked
package dev.space.api;

import org.jspecify.annotations.NullMarked;
