/// What sandboxes use, now and over time.
@NullMarked
package dev.space.core.usage;

import org.jspecify.annotations.NullMarked;
