#include "launcher/page_server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <utility>

#include "dist/rendezvous/secret.h"
#include "dist/rendezvous/socket.h"

namespace lockstep::launcher {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kHost = "127.0.0.1";
/// A browser on this machine needs no more; another client must not keep it from its turn for long.
constexpr std::chrono::seconds kPatience{5};
constexpr size_t kLongestRequest = 16384;

/// The request's lines up to the empty one; what there is of it when the client stops sending.
std::string read_request(const Descriptor& socket) {
  const auto deadline = Clock::now() + kPatience;
  std::string request;
  std::array<char, 4096> piece;
  while (request.find("\r\n\r\n") == request.npos && request.size() < kLongestRequest) {
    if (!dist::wait_for(socket, /*write=*/false, deadline)) break;
    const ssize_t count = ::recv(socket.get(), piece.data(), piece.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count <= 0) break;
    request.append(piece.data(), static_cast<size_t>(count));
  }
  return request;
}

void send_all(const Descriptor& socket, std::string_view text) {
  const auto deadline = Clock::now() + kPatience;
  while (!text.empty() && dist::wait_for(socket, /*write=*/true, deadline)) {
    const ssize_t count = ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

/// `more`: further headers, each with its line's end.
std::string response(std::string_view status, std::string_view type, std::string_view body,
                     std::string_view more = "") {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\n{}"
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
      "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{}",
      status, type, body.size(), more, body);
}

/// The value of a header; empty if there is none. Names of headers have no case.
std::string header_of(std::string_view request, std::string_view name) {
  const auto lower = [](std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return result;
  };
  const std::string lines = lower(request);
  const std::string key = "\r\n" + lower(name) + ":";
  const size_t found = lines.find(key);
  if (found == lines.npos) return "";
  const size_t begin = lines.find_first_not_of(' ', found + key.size());
  const size_t end = lines.find("\r\n", found + key.size());
  return begin == lines.npos || end == lines.npos || begin > end ? ""
                                                                 : lines.substr(begin, end - begin);
}

}  // namespace

PageServer::PageServer(uint16_t port, int64_t refresh)
    : refresh_(refresh), token_(dist::random_secret()) {
  dist::Endpoint endpoint{kHost, port};
  try {
    listener_ = dist::listen_at(endpoint);
  } catch (const dist::AddressInUse&) {
    throw dist::AddressInUse(fmt::format(
        "[report] port {} is in use by another program: expected a free one. Choose another with "
        "--port, or leave it out for any that is free.",
        port));
  }
  port_ = endpoint.port;
}

std::string PageServer::address() const {
  return fmt::format("http://{}:{}/{}/", kHost, port_, token_);
}

std::string PageServer::answer_to(std::string_view request,
                                  const std::function<std::string()>& page) const {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  constexpr std::string_view kGet = "GET ";
  if (!line.starts_with(kGet)) {
    return response("405 Method Not Allowed", "text/plain", "Only GET is answered.\n");
  }
  const std::string_view path = line.substr(kGet.size(), line.find(' ', kGet.size()) - kGet.size());
  // A site whose name was made to mean this machine would send its own name.
  const std::string host = header_of(request, "Host");
  const bool is_here =
      host == fmt::format("{}:{}", kHost, port_) || host == fmt::format("localhost:{}", port_);
  const bool is_told = path.size() == token_.size() + 2 && path.front() == '/' &&
                       path.back() == '/' &&
                       dist::same_secret(path.substr(1, token_.size()), token_);
  if (!is_here || !is_told) return response("404 Not Found", "text/plain", "Nothing is here.\n");
  const std::string again = refresh_ > 0 ? fmt::format("Refresh: {}\r\n", refresh_) : "";
  try {
    return response("200 OK", "text/html", page(), again);
  } catch (const std::exception& error) {
    // Whatever it is, the next load may find the run whole.
    return response("500 Internal Server Error", "text/plain", fmt::format("{}\n", error.what()),
                    again);
  }
}

void PageServer::answer_one(const std::function<std::string()>& page) {
  // listen_at's sockets do not block.
  while (!dist::wait_for(listener_, /*write=*/false, Clock::now() + std::chrono::hours(1))) {
  }
  const dist::Accepted client = dist::accept_at(listener_);
  if (!client.socket) return;
  const std::string request = read_request(client.socket);
  if (!request.empty()) send_all(client.socket, answer_to(request, page));
}

}  // namespace lockstep::launcher
