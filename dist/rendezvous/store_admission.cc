#include "dist/rendezvous/store_admission.h"

#include "core/base/check.h"
#include "dist/rendezvous/join_message.h"
#include "dist/rendezvous/secret.h"

namespace lockstep::dist {

namespace {

using Standing = StoreTable::Standing;

template <class... Args>
Refusal refusal(fmt::format_string<Args...> form, Args&&... args) {
  return {StoreStatus::kDistError, fmt::format(form, std::forward<Args>(args)...)};
}

/// Shortens text of an unknown sender and replaces unprintable characters, for logs.
std::string printable(std::string text) {
  constexpr size_t kMost = 100;
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

}  // namespace

bool is_from_newcomer(const StoreMessage& hello) {
  return hello.kind == StoreMessage::Kind::kHello && !hello.texts.empty() &&
         hello.texts[0] == kJoinMagic;
}

std::optional<Refusal> check_admission(const StoreMessage& hello, const StoreServerOptions& options,
                                       const StoreTable& table) {
  if (hello.kind != StoreMessage::Kind::kHello || hello.numbers.empty() || hello.texts.empty() ||
      hello.texts[0] != kStoreMagic) {
    return refusal("it sent what is no message of a store");
  }
  if (hello.numbers[0] != kStoreProtocol || !has_form(hello, 4, 4)) {
    return refusal(
        "it speaks version {} of the store's protocol, this server version {}. All ranks must run "
        "the same build",
        hello.numbers[0], kStoreProtocol);
  }
  if (hello.texts[1] != options.job) {
    return refusal("it is of job \"{}\", this is job \"{}\". Each job needs an address of its own",
                   printable(hello.texts[1]), options.job);
  }
  if (!same_secret(hello.texts[2], options.secret)) {
    return refusal("it does not know the secret of job \"{}\"", options.job);
  }
  const int64_t rank = hello.numbers[1];
  const std::string who =
      fmt::format("{} (host {}, pid {})", rank == kAnyRank ? "one" : fmt::format("rank {}", rank),
                  printable(hello.texts[3]), hello.numbers[3]);
  if (hello.numbers[2] != options.world_size) {
    Refusal other = refusal(
        "{} was started for a world of {} ranks, the job has {}. Start all ranks with the same "
        "number",
        who, hello.numbers[2], options.world_size);
    other.status = StoreStatus::kMismatchError;
    return other;
  }
  if (rank == kAnyRank) {
    if (table.free_rank(options.rank)) return std::nullopt;
    return refusal(
        "{} asks for a number, but all {} ranks have come, or only that of the server is left", who,
        options.world_size);
  }
  if (rank < 0 || rank >= options.world_size) {
    return refusal("{} cannot be among {} ranks", who, options.world_size);
  }
  const Standing standing = table.standing(static_cast<int>(rank));
  const std::string known = table.describe(static_cast<int>(rank));
  if (standing == Standing::kHere) {
    return refusal(
        "there is {} already, so {} cannot be it, too. Give each process a rank of its own", known,
        who);
  }
  if (standing == Standing::kLost) {
    return refusal("{} is lost, and {} cannot take its place in the same job", known, who);
  }
  return std::nullopt;
}

}  // namespace lockstep::dist
