/// The guest link: gRPC over one byte stream.
@NullMarked
package dev.space.guest;

import org.jspecify.annotations.NullMarked;
