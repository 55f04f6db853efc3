#include "dist/group/mpi_group.h"

#include <fmt/core.h>

#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/build_identity.h"
#include "core/base/check.h"
#include "dist/group/agreement.h"
#include "dist/group/transport_group.h"
#include "dist/rendezvous/host_addresses.h"
#include "dist/rendezvous/secret.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store_control.h"
#include "dist/rendezvous/store_server.h"
#include "dist/transport/mpi_transport.h"

namespace lockstep::dist {
namespace {

using std::chrono::milliseconds;

/// Added to the start limit, so that the transport's own, more specific timeout comes first.
constexpr milliseconds kStartGrace = std::chrono::seconds(5);
/// Timeout of a connection attempt to one address of rank 0's host.
constexpr milliseconds kTryLimit = std::chrono::seconds(3);

/// Returns what rank 0 sends to the others: port, secret, the name of this start and the addresses
/// of its host, one a line.
std::string invitation(uint16_t port, const std::string& secret) {
  std::string text = fmt::format("{}\n{}\n{}", port, secret, random_secret());
  for (const std::string& address : host_addresses()) text += "\n" + address;
  return text;
}

struct Invitation {
  uint16_t port = 0;
  std::string secret;
  std::string start;
  std::vector<std::string> hosts;
};

Invitation read_invitation(const std::string& text, bool same_host) {
  Invitation result;
  std::istringstream lines(text);
  std::string port;
  std::getline(lines, port);
  std::getline(lines, result.secret);
  std::getline(lines, result.start);
  result.port = static_cast<uint16_t>(std::stoi(port));
  constexpr const char* kLoopback = "127.0.0.1";
  if (same_host) result.hosts.push_back(kLoopback);
  for (std::string host; std::getline(lines, host);) result.hosts.push_back(host);
  // Last resort for a host without a network. On another host the secret protects against a server
  // that does not belong to the job.
  if (!same_host) result.hosts.push_back(kLoopback);
  return result;
}

/// Tries the addresses one after another: it is not known which of them this host can reach.
std::unique_ptr<StoreControl> join(const Invitation& invitation, StoreOptions options) {
  std::string tried;
  for (const std::string& host : invitation.hosts) {
    options.address = to_string(Endpoint{host, invitation.port});
    options.join_timeout = kTryLimit;
    try {
      return std::make_unique<StoreControl>(Store(options));
    } catch (const DistError& error) {
      tried += fmt::format("\n{}: {}", options.address, error.what());
    }
  }
  throw BackendError(fmt::format("[mpi] rank {} does not reach rank 0 at any of its addresses:{}",
                                 options.rank, tried));
}

Connections connect(const MpiOptions& mpi, milliseconds silence) {
  std::unique_ptr<MpiTransport> transport = connect_mpi(mpi);
  const int rank = transport->rank();
  std::shared_ptr<StoreServer> server;
  std::string invited;
  if (rank == 0) {
    StoreServerOptions options;
    // Other hosts need not see the store of a job that has no rank there.
    const bool one_host = transport->local_size() == transport->size();
    options.address = one_host ? "127.0.0.1:0" : "0.0.0.0:0";
    options.job = "mpi";
    options.secret = random_secret();
    options.world_size = transport->size();
    options.silence = silence;
    server = std::make_shared<StoreServer>(options);
    invited = invitation(parse_endpoint(server->address()).port, options.secret);
  }
  // True on rank 0's node if ranks are numbered node by node.
  const bool same_host = transport->local_rank() == rank;
  const std::vector<std::string> texts = transport->all_gather_bytes(invited, mpi.start_limit);
  const Invitation found = read_invitation(texts[0], same_host);
  StoreOptions options;
  options.job = "mpi";
  options.secret = found.secret;
  options.rank = rank;
  options.world_size = transport->size();
  options.silence = silence;
  std::unique_ptr<StoreControl> control = join(found, options);
  // From here on every rank is connected to the store, so that a failure reaches all of them.
  transport->all_gather_bytes({}, mpi.start_limit);
  std::vector<int> hosts = transport->hosts();
  return {std::move(transport), std::move(control), std::move(server), found.start, {},
          std::move(hosts)};
}

}  // namespace

std::shared_ptr<Communicator> mpi_communicator(const Communicator::Options& options,
                                               const std::string& alike, milliseconds silence) {
  LS_CHECK(has_mpi(), BackendError,
           "[mpi] Lockstep was built without MPI. Install libopenmpi-dev and build again.");
  MpiOptions mpi = mpi_options();
  mpi.told = fmt::format("version: {}\nbuild: {}\nLOCKSTEP_SHM: {}\n{}", LOCKSTEP_VERSION,
                         build_identity(), mpi.shared_memory ? 1 : 0, alike);
  mpi.compare = [](int rank, const std::vector<std::string>& told) {
    require_alike("start", rank, told);
  };
  Communicator::Options with_limit = options;
  // MPI waits forever for ranks that never come, and cannot be interrupted.
  if (!with_limit.start_limit) with_limit.start_limit = mpi.start_limit + kStartGrace;
  return std::make_shared<Communicator>([mpi, silence] { return connect(mpi, silence); },
                                        with_limit);
}

std::unique_ptr<ProcessGroup> mpi_group(const Communicator::Options& options,
                                        const std::string& alike) {
  return transport_group(mpi_communicator(options, alike), "mpi");
}

}  // namespace lockstep::dist
