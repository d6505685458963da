/// Lifecycle events as they are told to subscribers.
@NullMarked
package dev.space.core.event;

import org.jspecify.annotations.NullMarked;
