package dev.space.core.store;

import java.util.Optional;

/// Small values of the service itself, such as the key that signs attachment tokens.
public interface SettingRows {

  Optional<String> find(String name);

  void put(String name, String value);
}
