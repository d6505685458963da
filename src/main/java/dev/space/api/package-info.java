/// The native API, control plane side.
@NullMarked
package dev.space.api;

import org.jspecify.annotations.NullMarked;
