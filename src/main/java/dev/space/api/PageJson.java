package dev.space.api;

import java.util.List;
import java.util.Optional;

record PageJson<T>(List<T> items, Optional<String> next) {}
