package dev.space.api;

import dev.space.core.template.Resources;

record ResourcesJson(int vcpus, int memoryMib, int diskMib) {
  static ResourcesJson of(Resources r) {
    return new ResourcesJson(r.vcpus(), r.memoryMib(), r.diskMib());
  }
}
