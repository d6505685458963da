/// Who calls: API keys, their project and role.
@NullMarked
package dev.space.core.access;

import org.jspecify.annotations.NullMarked;
