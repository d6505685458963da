package dev.space.app;

/// The version of this build.
public final class Version {

  private Version() {}

  /// The jar's version, or `dev` when it runs from classes.
  public static String current() {
    String version = Version.class.getPackage().getImplementationVersion();
    return version == null ? "dev" : version;
  }
}
