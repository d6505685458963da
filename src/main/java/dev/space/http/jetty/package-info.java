/// The server behind `dev.space.http`, on Jetty. Nothing else imports Jetty.
@NullMarked
package dev.space.http.jetty;

import org.jspecify.annotations.NullMarked;
