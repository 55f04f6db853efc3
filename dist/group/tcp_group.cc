#include "dist/group/tcp_group.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/build_identity.h"
#include "core/base/check.h"
#include "dist/group/agreement.h"
#include "dist/group/transport_group.h"
#include "dist/rendezvous/listening.h"
#include "dist/rendezvous/secret.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store_control.h"
#include "dist/rendezvous/store_gather.h"
#include "dist/rendezvous/store_message.h"
#include "dist/rendezvous/store_server.h"
#include "dist/rendezvous/tcp_mesh.h"
#include "dist/transport/mpi_transport.h"
#include "dist/transport/tcp_transport.h"

namespace lockstep::dist {
namespace {

using std::chrono::milliseconds;

/// Added to the start limit, so that the errors of the start itself, which name ranks, come first.
constexpr milliseconds kErrorsFirst = std::chrono::seconds(5);

/// What a start needs besides the rendezvous.
struct Start {
  bool shared_memory = true;
  milliseconds limit{0};
  milliseconds silence{0};
  std::string told;  ///< what must be alike on all ranks
};

std::shared_ptr<StoreServer> serve(const Rendezvous& where, const Endpoint& address,
                                   milliseconds silence) {
  StoreServerOptions options;
  options.address = to_string(listening(address));
  options.job = where.job;
  options.secret = where.secret;
  options.world_size = where.size;
  options.silence = silence;
  options.frees_address = where.frees_address;
  return std::make_shared<StoreServer>(options);
}

/// Becomes rank 0 if `address` is of this machine and no process listens there yet; else returns
/// null.
std::shared_ptr<StoreServer> try_to_serve(const Rendezvous& where, const Endpoint& address,
                                          milliseconds silence) {
  if (!is_own_host(address.host)) return nullptr;
  try {
    return serve(where, address, silence);
  } catch (const AddressInUse&) {
    return nullptr;
  }
}

/// Address of the server for this rank: rank 0 does not depend on the name that others use.
std::string server_address(const Rendezvous& where, const Endpoint& address) {
  if (where.rank != 0 || is_loopback(address.host)) return where.address;
  const bool v6 = address.host.find(':') != std::string::npos;
  return to_string(Endpoint{v6 ? "::1" : "127.0.0.1", address.port});
}

/// Compares the ranks, and agrees on the two names of this start: a public one, and the secret of
/// its connections between ranks.
std::pair<std::string, std::string> agree(Store& store, const Start& start) {
  StoreGather gather(store, "told");
  const std::vector<std::string> told = gather(start.told, start.limit);
  try {
    require_alike("start", store.rank(), told);
  } catch (const Error&) {
    // No rank may end before the others have compared as well.
    store.barrier("compared", start.limit);
    throw;
  }
  const bool leads = store.rank() == 0;
  const std::vector<std::string> names =
      gather(leads ? random_secret() + random_secret() : std::string(), start.limit);
  const size_t half = names[0].size() / 2;
  return {names[0].substr(0, half), names[0].substr(half)};
}

Connections connect(Rendezvous where, const Start& start, RankPlace* place,
                    std::shared_ptr<StoreServer> server) {
  const Endpoint address = parse_endpoint(where.address);
  if (where.rank == 0 && server == nullptr) server = serve(where, address, start.silence);
  if (where.rank == kAnyRank) {
    server = try_to_serve(where, address, start.silence);
    if (server) where.rank = 0;
  }
  StoreOptions options;
  options.address = server_address(where, address);
  options.job = where.job;
  options.secret = where.secret;
  options.rank = where.rank;
  options.world_size = where.size;
  options.host_may_come = where.host_may_come;
  options.join_timeout = start.limit;
  options.timeout = start.limit;
  options.silence = start.silence;
  Store store(options);
  where.rank = store.rank();
  auto control = std::make_unique<StoreControl>(store);
  try {
    store.join();
    const auto [name, secret] = agree(store, start);
    StoreGather gather(store, "transport");
    const auto all_gather = [&](std::string text) { return gather(std::move(text)); };
    // The network by which this host reaches rank 0's is the likeliest to reach it by.
    const std::string known = where.rank == 0 ? address.host : store.own_host();
    std::vector<std::string> addresses;
    if (!is_loopback(known)) addresses.push_back(known);
    TcpTransport::Options wanted;
    wanted.shared_memory = start.shared_memory;
    wanted.connect = [&, secret = secret](const std::vector<int>& peers,
                                          const std::vector<bool>& near) {
      return connect_mesh(where.rank, secret, addresses, all_gather, peers, near, start.limit);
    };
    auto transport = std::make_unique<TcpTransport>(where.rank, where.size, all_gather, wanted);
    if (place != nullptr) {
      *place = {transport->local_rank(), transport->local_size(), transport->host_rank(),
                transport->host_count()};
    }
    // From here on no rank waits for another with anything but operations.
    store.barrier("connected");
    const auto meet = [store]() mutable { store.barrier("end", milliseconds::max()); };
    std::vector<int> hosts = transport->hosts();
    return {std::move(transport), std::move(control), std::move(server), name, meet,
            std::move(hosts)};
  } catch (const std::exception& error) {
    control->fail(error.what());  // in its own words, which the end of the connection lacks
    throw;
  }
}

}  // namespace

std::string told_at_start(const std::string& alike) {
  return fmt::format("version: {}\nbuild: {}\nLOCKSTEP_SHM: {}\n{}", LOCKSTEP_VERSION,
                     build_identity(), mpi_options().shared_memory ? 1 : 0, alike);
}

std::shared_ptr<Communicator> tcp_communicator(const Rendezvous& rendezvous,
                                               const Communicator::Options& options,
                                               const std::string& alike, milliseconds silence,
                                               RankPlace* place,
                                               std::shared_ptr<StoreServer> server) {
  const MpiOptions given = mpi_options();
  Start start;
  start.shared_memory = given.shared_memory;
  start.limit = options.start_limit.value_or(given.start_limit);
  start.silence = silence;
  start.told = told_at_start(alike);
  Communicator::Options with_limit = options;
  with_limit.start_limit = start.limit + kErrorsFirst;
  // The thread may outlive this call, which then throws.
  const auto found = std::make_shared<RankPlace>();
  auto communicator = std::make_shared<Communicator>(
      [rendezvous, start, found, server = std::move(server)]() mutable {
        return connect(rendezvous, start, found.get(), std::move(server));
      },
      with_limit);
  if (place != nullptr) *place = *found;
  return communicator;
}

std::unique_ptr<ProcessGroup> tcp_group(const Rendezvous& rendezvous,
                                        const Communicator::Options& options,
                                        const std::string& alike) {
  return transport_group(tcp_communicator(rendezvous, options, alike), "tcp");
}

}  // namespace lockstep::dist
