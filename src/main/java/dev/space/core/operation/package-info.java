/// Asynchronous lifecycle changes that are polled by id.
@NullMarked
package dev.space.core.operation;

import org.jspecify.annotations.NullMarked;
