#include "dist/rendezvous/rendezvous.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "core/base/check.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store_message.h"

namespace lockstep::dist {
namespace {

/// torchrun's default.
constexpr uint16_t kPort = 29500;
/// Below the ports that systems give to connections, from 32768 on.
constexpr uint32_t kFirstPort = 15000;
constexpr uint32_t kPorts = 15000;

/// FNV-1a: alike on all machines.
uint32_t hash(std::string_view text) {
  uint32_t value = 2166136261U;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 16777619U;
  return value;
}

uint16_t port_of(const std::string& job) {
  if (job.empty()) return kPort;
  return static_cast<uint16_t>(kFirstPort + hash(job) % kPorts);
}

}  // namespace

Rendezvous rendezvous_of(const RankEnvironment& environment, std::string secret) {
  Rendezvous result;
  result.rank = environment.numbered ? environment.rank : kAnyRank;
  result.size = environment.size;
  // What is left of the job before a restart is another job.
  result.job = environment.job_id.empty() ? "without a name" : environment.job_id;
  if (environment.restart_count > 0) {
    result.job += fmt::format(", restart {}", environment.restart_count);
  }
  result.secret = std::move(secret);
  result.host_may_come = environment.in_kubernetes;
  Endpoint endpoint{environment.master_address, environment.master_port.value_or(0)};
  if (endpoint.host.empty()) {
    LS_CHECK(
        environment.local_size == environment.size, ConfigError,
        "[launch] {} does not know where rank 0 is: expected its host, as ranks may be on "
        "several. Set LOCKSTEP_MASTER_ADDR (and LOCKSTEP_MASTER_PORT), or MASTER_ADDR, or give "
        "--rendezvous HOST:PORT; for ranks of one host set LOCKSTEP_LOCAL_WORLD_SIZE={}.",
        to_string(environment), environment.size);
    endpoint.host = "127.0.0.1";
  }
  if (endpoint.port == 0) endpoint.port = port_of(environment.job_id);
  result.address = to_string(endpoint);
  return result;
}

}  // namespace lockstep::dist
