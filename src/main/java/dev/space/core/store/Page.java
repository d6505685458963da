package dev.space.core.store;

import java.util.List;
import java.util.Optional;

/// One page of a list. Lists are ordered by creation, newest first, and complete under concurrent
/// change.
///
/// @param next opaque cursor of the next page; empty at the end
public record Page<T>(List<T> items, Optional<String> next) {}
