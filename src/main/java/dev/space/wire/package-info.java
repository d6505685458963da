/// A small HTTP/1.1 client over TCP and unix sockets.
@NullMarked
package dev.space.wire;

import org.jspecify.annotations.NullMarked;
