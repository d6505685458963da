package dev.space;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/// The arrows of ARCHITECTURE.md. Each rule says what a package may know; all else is refused.
@AnalyzeClasses(packages = "dev.space", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {

  @ArchTest
  static final ArchRule coreKnowsOnlyItself = knows("core", "dev.space.core..", "org.slf4j..");

  @ArchTest
  static final ArchRule hostKnowsErrorsAlone =
      knows("host", "dev.space.host..", "dev.space.core.error..", "org.slf4j..", "tools.jackson..");

  @ArchTest
  static final ArchRule wireKnowsErrorsAlone =
      knows("wire", "dev.space.wire..", "dev.space.core.error..", "org.slf4j..", "tools.jackson..");

  @ArchTest
  static final ArchRule httpKnowsNoDomain =
      noClasses()
          .that()
          .resideInAPackage("dev.space.http..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "dev.space.core.sandbox..",
              "dev.space.core.session..",
              "dev.space.core.operation..",
              "dev.space.api..",
              "dev.space.dataplane..",
              "dev.space.store..",
              "dev.space.node..");

  @ArchTest
  static final ArchRule onlyOnePackageKnowsJetty =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.space.http.jetty..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("org.eclipse.jetty..");

  @ArchTest
  static final ArchRule onlyTheGuestLinkKnowsGrpc =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.space.guest..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("io.grpc..", "dev.space.guest.proto..");

  @ArchTest
  static final ArchRule onlyTheStoreKnowsSql =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.space.store..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("org.jdbi..", "java.sql..", "com.zaxxer..", "org.flywaydb..");

  @ArchTest
  static final ArchRule onePlaceSpawnsProcesses =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.space.host..")
          .should()
          .dependOnClassesThat()
          .haveFullyQualifiedName("java.lang.ProcessBuilder");

  /// It fails where the mount table doesn't know the root, as in a chroot.
  @ArchTest
  static final ArchRule freeSpaceIsAskedOfDiskSpace =
      noClasses().should().dependOnClassesThat().haveFullyQualifiedName("java.nio.file.FileStore");

  @ArchTest
  static final ArchRule edgesDoNotKnowEachOther =
      noClasses()
          .that()
          .resideInAnyPackage("dev.space.api..", "dev.space.dataplane..", "dev.space.e2b..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "dev.space.store..",
              "dev.space.node..",
              "dev.space.vmm..",
              "dev.space.guest..",
              "dev.space.image..",
              "dev.space.app..",
              "dev.space.cli..");

  @ArchTest
  static final ArchRule whatIsBelowCoreKnowsNoEdge =
      noClasses()
          .that()
          .resideInAnyPackage(
              "dev.space.store..",
              "dev.space.node..",
              "dev.space.vmm..",
              "dev.space.guest..",
              "dev.space.image..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "dev.space.api..",
              "dev.space.dataplane..",
              "dev.space.e2b..",
              "dev.space.http..",
              "dev.space.app..",
              "dev.space.cli..");

  @ArchTest
  static final ArchRule theNodeKnowsNoDriver =
      noClasses()
          .that()
          .resideInAPackage("dev.space.node..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("dev.space.vmm..", "dev.space.guest..", "dev.space.store..");

  @ArchTest
  static final ArchRule nobodyKnowsTheCommandLine =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.space.cli..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("dev.space.cli..");

  private static ArchRule knows(String feature, String... allowed) {
    String[] all = new String[allowed.length + 4];
    System.arraycopy(allowed, 0, all, 0, allowed.length);
    all[allowed.length] = "java..";
    all[allowed.length + 1] = "org.jspecify..";
    all[allowed.length + 2] = "";
    all[allowed.length + 3] = "javax.crypto..";
    return classes()
        .that()
        .resideInAPackage("dev.space." + feature + "..")
        .should()
        .onlyDependOnClassesThat()
        .resideInAnyPackage(all);
  }
}
