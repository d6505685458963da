/// The machine the service runs on: processes, files, prerequisites.
@NullMarked
package dev.space.host;

import org.jspecify.annotations.NullMarked;
