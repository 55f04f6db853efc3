#include "dist/rendezvous/store_control.h"

#include <exception>
#include <utility>

namespace lockstep::dist {

StoreControl::~StoreControl() { connection_->inbox().stop_listening(); }

int StoreControl::rank() const { return connection_->options().rank; }

int StoreControl::size() const { return connection_->options().world_size; }

void StoreControl::fail(const std::string& text) noexcept { connection_->fail(text); }

std::optional<Failure> StoreControl::failure() const { return connection_->inbox().failure(); }

void StoreControl::leave() noexcept { connection_->leave(); }

void StoreControl::post(int to, std::string message) noexcept {
  try {
    connection_->send({StoreMessage::Kind::kPost, 0, {to}, {std::move(message)}});
  } catch (const std::exception&) {
    // Out of memory: drop the message.
  }
}

void StoreControl::listen(Listener listener) { connection_->inbox().listen(std::move(listener)); }

}  // namespace lockstep::dist
