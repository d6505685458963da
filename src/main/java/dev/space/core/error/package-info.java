/// The one catalogue of errors: code, what happened, cause, remedy.
@NullMarked
package dev.space.core.error;

import org.jspecify.annotations.NullMarked;
