package dev.space.dataplane;

import dev.space.core.access.ApiKeys;
import dev.space.core.access.Caller;
import dev.space.core.session.SessionHost;
import dev.space.core.session.SessionService;
import dev.space.http.Exchange;
import dev.space.http.Handler;
import dev.space.http.HostDispatch;
import dev.space.http.Router;
import java.time.InstantSource;
import java.util.Optional;
import java.util.Set;

/// The data plane's calls: attachments to sessions, files, ports. Output, file bodies and port
/// traffic go through here and never through the control plane.
public final class DataPlane {

  private final Router routes;
  private final Handler handler;
  private final PortHandlers ports;

  /// @param portDomain below which `{port}-{id}` names a port of a sandbox; empty for none
  public DataPlane(
      SessionService sessions,
      SessionHost host,
      ApiKeys keys,
      PortTokens tokens,
      Optional<String> portDomain,
      InstantSource clock) {
    var doors = new Doors(keys, host);
    var builder = Router.builder();
    new AttachHandlers(sessions).addTo(builder);
    new FileHandlers(doors).addTo(builder);
    ports = new PortHandlers(doors, tokens, clock);
    ports.addTo(builder);
    routes = builder.build();
    handler =
        portDomain
            .<Handler>map(domain -> new HostDispatch(name -> ports.byHost(name, domain), routes))
            .orElse(routes);
  }

  /// Carries a request to a port of a sandbox and its answer back. Whether the client may do so was
  /// decided before; the port's server sees the request as the client sent it.
  ///
  /// @param caller on whose behalf the sandbox is used
  /// @param withheld names of headers that are for this service alone, in lower case
  /// @throws dev.space.core.error.SpaceException PORT_CLOSED, ILLEGAL_STATE and whatever else keeps
  ///   it from being answered
  public void carry(
      Exchange exchange, Caller caller, String sandboxId, int port, Set<String> withheld)
      throws Exception {
    ports.carry(exchange, caller, sandboxId, port, withheld);
  }

  /// The calls, for a listener of their own or as part of another router.
  public Router routes() {
    return routes;
  }

  /// What answers on the data plane's listener.
  public Handler handler() {
    return handler;
  }
}
