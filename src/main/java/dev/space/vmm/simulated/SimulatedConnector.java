package dev.space.vmm.simulated;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.Guest;
import dev.space.core.guest.GuestConnector;
import dev.space.core.guest.GuestLink;
import dev.space.core.vm.Vm;
import java.time.Duration;

/// Links to simulated guests.
final class SimulatedConnector implements GuestConnector {

  private final SimulatedHost host;

  SimulatedConnector(SimulatedHost host) {
    this.host = host;
  }

  @Override
  public GuestLink connect(Vm vm, long generation, Guest.Adoption adoption, Duration deadline) {
    SimulatedLink link = open(vm);
    try {
      link.adopt(generation, adoption, deadline);
      return link;
    } catch (RuntimeException e) {
      link.close();
      throw e;
    }
  }

  @Override
  public GuestLink greet(Vm vm, Duration deadline) {
    SimulatedLink link = open(vm);
    try {
      link.hello(deadline);
      return link;
    } catch (RuntimeException e) {
      link.close();
      throw e;
    }
  }

  private SimulatedLink open(Vm vm) {
    host.fault(SimulatedHost.Step.CONNECT, vm.spec());
    if (!(vm instanceof SimulatedVm simulated)) {
      throw Problem.of(ErrorCode.INTERNAL, "Not a simulated VM").toException();
    }
    SimulatedLink link = simulated.open();
    link.check();
    return link;
  }
}
