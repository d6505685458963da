/// E2B's protocol over the same services as the native API, on a listener of its own. What differs
/// from E2B is in `docs/e2b-compatibility.md`.
@NullMarked
package dev.space.e2b;

import org.jspecify.annotations.NullMarked;
