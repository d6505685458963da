/// What the host can ask of a running guest.
@NullMarked
package dev.space.core.guest;

import org.jspecify.annotations.NullMarked;
