@NullMarked
package dev.space.core.event;

import org.jspecify.annotations.NullMarked;
