/// Sandboxes: what they are, the table of their states, and the service that changes them.
@NullMarked
package dev.space.core.sandbox;

import org.jspecify.annotations.NullMarked;
