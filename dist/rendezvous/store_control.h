#pragma once

#include <memory>
#include <optional>
#include <string>

#include "dist/rendezvous/job_control.h"
#include "dist/rendezvous/store.h"

namespace lockstep::dist {

/// JobControl of ranks that are processes, over their connections with the store.
///
/// A rank ended without `leave` when its connection did: its process was killed, or crashed, or
/// gave up its Store. All others know it within milliseconds, and name it with host and process. So
/// they do where the process of the store's server ended: it is that rank's failure, or rank 0's
/// where it is in none. How hosts that vanish are found, and what becomes of a process that is
/// stopped: dist/rendezvous/store_server.h.
///
/// Texts from one rank to another arrive in order. Those to a rank that has not connected yet wait
/// for it, up to 1 MiB; those to a rank that does not read (it is stopped) are dropped beyond that.
/// Failures are cut at 1 MiB. A failure that the server does not pass on within 1 s is told to this
/// rank alone.
class StoreControl final : public JobControl {
 public:
  explicit StoreControl(const Store& store) : connection_(store.connection()) {}
  ~StoreControl() override;

  int rank() const override;
  int size() const override;
  void fail(const std::string& text) noexcept override;
  std::optional<Failure> failure() const override;
  /// The store is of no use to this rank afterwards, either.
  void leave() noexcept override;
  void post(int to, std::string message) noexcept override;
  void listen(Listener listener) override;

 private:
  std::shared_ptr<StoreConnection> connection_;
};

}  // namespace lockstep::dist
