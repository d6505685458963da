/// Blocking HTTP server: router, exchange, streams.
@NullMarked
package dev.space.http;

import org.jspecify.annotations.NullMarked;
