package dev.space.cli;

/// Entry point of the command line.
public final class Main {

  private Main() {}

  public static void main(String[] args) {
    System.exit(args.length == 0 ? 2 : 0);
  }
}
