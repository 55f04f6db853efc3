#include "dist/rendezvous/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/check.h"
#include "dist/rendezvous/socket.h"

namespace lockstep::dist {

namespace {
constexpr size_t kChunk = size_t{64} << 10;
constexpr int kChunksAtOnce = 4;
}  // namespace

void Connection::send(const StoreMessage& message) {
  const std::string bytes = encode(message);
  if (broken_) return;
  out_ += bytes;
  flush();
}

void Connection::flush() noexcept {
  while (sent_ < out_.size()) {
    const ssize_t sent =
        ::send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (sent > 0) {
      sent_ += static_cast<size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // Free sent bytes even if the other side never catches up completely.
      if (sent_ > out_.size() / 2) {
        out_.erase(0, sent_);
        sent_ = 0;
      }
      return;
    } else if (errno != EINTR) {
      broken_ = true;
      break;
    }
  }
  sent_ = 0;
  out_.clear();
  // Fails if the other side has closed the connection already.
  if (ending_) (void)::shutdown(socket_.get(), SHUT_WR);
}

void Connection::end_sending() noexcept {
  ending_ = true;
  flush();
}

bool Connection::receive(std::string& why) {
  for (int i = 0; i < kChunksAtOnce; ++i) {
    const size_t before = in_.size();
    const size_t most = largest_ + sizeof(uint32_t);
    if (before - taken_ >= most) return true;  // holds a whole message, or invalid bytes
    const size_t wanted = std::min(kChunk, most - (before - taken_));
    in_.resize(before + wanted);
    const ssize_t got = ::recv(socket_.get(), in_.data() + before, wanted, 0);
    const int error = errno;
    in_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) {
      why = "ended without leaving the job: its connection was closed";
      return false;
    }
    if (got > 0) {
      if (static_cast<size_t>(got) < wanted) return true;
    } else if (error == EAGAIN || error == EWOULDBLOCK) {
      return true;
    } else if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH) {
      why = fmt::format("is lost: its host, or the network to it, does not answer ({})",
                        std::strerror(error));
      return false;
    } else if (error != EINTR) {
      why = fmt::format("ended without leaving the job: its connection broke ({})",
                        std::strerror(error));
      return false;
    }
  }
  return true;
}

std::optional<StoreMessage> Connection::next() {
  uint32_t length = 0;
  const size_t there = in_.size() - taken_;
  if (there < sizeof length) return std::nullopt;
  std::memcpy(&length, in_.data() + taken_, sizeof length);
  LS_CHECK(length <= largest_, DistError,
           "[store] received what is no message of a store: its length would be {} bytes.", length);
  if (there < sizeof length + length) return std::nullopt;
  std::optional<StoreMessage> message =
      decode(std::string_view(in_).substr(taken_ + sizeof length, length));
  LS_CHECK(message.has_value(), DistError,
           "[store] received what is no message of a store, of {} bytes.", length);
  taken_ += sizeof length + length;
  if (taken_ == in_.size() || taken_ >= kChunk) {
    in_.erase(0, taken_);
    taken_ = 0;
  }
  return message;
}

std::chrono::milliseconds Connection::silent_for(
    std::chrono::steady_clock::time_point now) noexcept {
  const auto silent = unanswered_for(socket_);
  if (silent == silent.zero()) {
    unanswered_since_.reset();
    return silent;
  }
  // The last acknowledgement may be much older than the bytes in flight: count from the first call
  // that saw them.
  if (!unanswered_since_) unanswered_since_ = now;
  return std::min(silent,
                  std::chrono::duration_cast<std::chrono::milliseconds>(now - *unanswered_since_));
}

}  // namespace lockstep::dist
