/// Templates: starting environments, their recipe and their tags.
@NullMarked
package dev.space.core.template;

import org.jspecify.annotations.NullMarked;
