/// The interface of the durable store.
@NullMarked
package dev.space.core.store;

import org.jspecify.annotations.NullMarked;
