/// The command line.
@NullMarked
package dev.space.cli;

import org.jspecify.annotations.NullMarked;
