/// Sessions: one command in a sandbox, its numbered output and its attachments.
@NullMarked
package dev.space.core.session;

import org.jspecify.annotations.NullMarked;
