#pragma once

#include <memory>
#include <optional>
#include <string>

#include "dist/rendezvous/job_control.h"
#include "dist/rendezvous/store.h"

namespace lockstep::dist {

/// JobControl of ranks that are processes, over their connections to the store.
///
/// A rank whose connection ends without `leave` has failed: its process was killed, crashed, or
/// destroyed its Store. All other ranks are told within milliseconds, with its host and process.
/// The end of the store's server is a failure of the rank it runs in, or of rank 0 if it runs in
/// none. dist/rendezvous/store_server.h says how vanished hosts are detected, and how stopped
/// processes are treated.
///
/// Texts from one rank to another arrive in order. Up to 1 MiB are kept for a rank that has not
/// connected yet or does not read (it is stopped); further ones are dropped. Failures are truncated
/// at 1 MiB. If the server does not pass a failure on within 1 s, only this rank is told.
class StoreControl final : public JobControl {
 public:
  explicit StoreControl(const Store& store) : connection_(store.connection()) {}
  ~StoreControl() override;

  int rank() const override;
  int size() const override;
  void fail(const std::string& text) noexcept override;
  std::optional<Failure> failure() const override;
  /// The rank cannot use the store afterwards, either.
  void leave() noexcept override;
  void post(int to, std::string message) noexcept override;
  void listen(Listener listener) override;

 private:
  std::shared_ptr<StoreConnection> connection_;
};

}  // namespace lockstep::dist
