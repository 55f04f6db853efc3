#include "dist/rendezvous/store_table.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/check.h"
#include "dist/rendezvous/rank_list.h"

namespace lockstep::dist {

namespace {

using Kind = StoreMessage::Kind;

constexpr size_t kRefusalsKept = 4;
constexpr size_t kNamesInText = 8;

bool is_well_formed(const StoreMessage& request) {
  switch (request.kind) {
    case Kind::kSet:
      return has_form(request, 0, 2);
    case Kind::kGet:
    case Kind::kAdd:
    case Kind::kBarrier:
      return has_form(request, 1, 1);
    case Kind::kCheck:
      return has_form(request, 0, -1);
    case Kind::kWait:
      return has_form(request, 1, -1);
    case Kind::kCompareSet:
      return has_form(request, 0, 3);
    case Kind::kErase:
      return has_form(request, 0, 1);
    case Kind::kJoin:
      return has_form(request, 1, 0);
    default:
      return false;
  }
}

std::string quoted(std::vector<std::string> keys) {
  const size_t more = keys.size() > kNamesInText ? keys.size() - kNamesInText : 0;
  keys.resize(keys.size() - more);
  for (std::string& key : keys) key = fmt::format("\"{}\"", key);
  if (more > 0) keys.push_back(fmt::format("{} more", more));
  return fmt::format("{}", fmt::join(keys, ", "));
}

}  // namespace

StoreTable::StoreTable(int world_size, Answer answer)
    : answer_(std::move(answer)), members_(static_cast<size_t>(world_size)) {}

std::string StoreTable::describe(int rank) const {
  const Member& of = member(rank);
  if (of.standing == Standing::kNeverCame) return fmt::format("rank {}", rank);
  return fmt::format("rank {} (host {}, pid {})", rank, of.host, of.pid);
}

std::optional<int> StoreTable::free_rank(int except) const {
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank) {
    if (rank != except && standing(rank) == Standing::kNeverCame) return rank;
  }
  return std::nullopt;
}

void StoreTable::came(int rank, std::string host, int64_t pid) {
  member(rank) = {Standing::kHere, std::move(host), pid};
  const bool all = std::ranges::none_of(
      members_, [](const Member& one) { return one.standing == Standing::kNeverCame; });
  while (all && !joins_.empty()) succeed(waits_.find(*joins_.begin()));
}

void StoreTable::left(int rank) {
  member(rank).standing = Standing::kLeft;
  std::vector<uint64_t> hopeless;
  for (const auto& [id, wait] : waits_) {
    if (wait.rank == rank || wait.request.kind == Kind::kBarrier) hopeless.push_back(id);
  }
  for (const uint64_t id : hopeless) {
    const Wait wait = end(waits_.find(id));
    answer(wait.rank, wait.request.id, StoreStatus::kPeerLostError,
           fmt::format("[store] barrier \"{}\" cannot be complete: {} has left the job.",
                       wait.request.texts.empty() ? "" : wait.request.texts[0], describe(rank)));
  }
}

void StoreTable::lost(int rank, const std::string& why) {
  const std::string text = fmt::format("{} {}.", describe(rank), why);
  member(rank).standing = Standing::kLost;
  fail({rank, text});
}

void StoreTable::fail(Failure failure) {
  if (failure_) return;
  failure_ = std::move(failure);
  while (!waits_.empty()) {
    const Wait wait = end(waits_.begin());
    answer(wait.rank, wait.request.id, StoreStatus::kPeerLostError,
           "[store] the job has failed: " + failure_->text);
  }
}

void StoreTable::refused(std::string text) {
  if (refused_.size() == kRefusalsKept) refused_.erase(refused_.begin());
  refused_.push_back(std::move(text));
}

bool StoreTable::all_left() const {
  return std::ranges::all_of(members_,
                             [](const Member& one) { return one.standing == Standing::kLeft; });
}

void StoreTable::answer(int rank, uint64_t id, StoreStatus status, std::string text) {
  // A rank that has left or is lost gets no answers.
  if (member(rank).standing != Standing::kHere) return;
  answer_(rank, {Kind::kAnswer, id, {static_cast<int64_t>(status)}, {std::move(text)}});
}

void StoreTable::request(int rank, const StoreMessage& request, Time now) {
  if (!is_well_formed(request)) {
    return answer(rank, request.id, StoreStatus::kDistError,
                  "[store] the server does not understand the request.");
  }
  switch (request.kind) {
    case Kind::kSet:
      put(request.texts[0], request.texts[1]);
      return answer(rank, request.id, StoreStatus::kOk, "");
    case Kind::kAdd:
      return add(rank, request);
    case Kind::kCompareSet:
      return compare_set(rank, request);
    case Kind::kCheck: {
      const bool all = std::ranges::all_of(
          request.texts, [&](const std::string& key) { return values_.contains(key); });
      return answer(rank, request.id, StoreStatus::kOk, all ? "1" : "0");
    }
    case Kind::kErase: {
      const bool was_there = values_.erase(request.texts[0]) == 1;
      return answer(rank, request.id, StoreStatus::kOk, was_there ? "1" : "0");
    }
    case Kind::kJoin:
      return join(rank, request, now);
    case Kind::kBarrier:
      return barrier(rank, request, now);
    default:
      return wait_for_keys(rank, request, now);
  }
}

void StoreTable::put(const std::string& key, std::string value) {
  values_[key] = std::move(value);
  const auto waiting = waits_for_key_.find(key);
  if (waiting == waits_for_key_.end()) return;
  for (const uint64_t id : std::exchange(waiting->second, {})) {
    const auto wait = waits_.find(id);
    std::erase(wait->second.missing, key);
    if (wait->second.missing.empty()) succeed(wait);
  }
  waits_for_key_.erase(key);
}

void StoreTable::add(int rank, const StoreMessage& request) {
  const auto& key = request.texts[0];
  const auto there = values_.find(key);
  int64_t sum = 0;
  if (there != values_.end()) {
    const std::string& text = there->second;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), sum);
    if (error != std::errc() || stop != text.data() + text.size() || text.empty()) {
      return answer(rank, request.id, StoreStatus::kDistError,
                    fmt::format("[store] cannot add to key \"{}\": its value is no number.", key));
    }
  }
  if (__builtin_add_overflow(sum, request.numbers[0], &sum)) {
    return answer(rank, request.id, StoreStatus::kDistError,
                  fmt::format("[store] cannot add {} to key \"{}\": the sum is out of 64 bits.",
                              request.numbers[0], key));
  }
  put(key, std::to_string(sum));
  answer(rank, request.id, StoreStatus::kOk, std::to_string(sum));
}

void StoreTable::compare_set(int rank, const StoreMessage& request) {
  const auto& key = request.texts[0];
  const auto there = values_.find(key);
  std::string now = there == values_.end() ? "" : there->second;
  if (now == request.texts[1]) {
    now = request.texts[2];
    put(key, now);
  }
  answer(rank, request.id, StoreStatus::kOk, std::move(now));
}

void StoreTable::wait_for_keys(int rank, const StoreMessage& request, Time now) {
  std::vector<std::string> missing;
  for (const std::string& key : request.texts) {
    if (!values_.contains(key)) missing.push_back(key);
  }
  std::ranges::sort(missing);
  missing.erase(std::ranges::unique(missing).begin(), missing.end());
  const uint64_t id = wait(rank, request, std::move(missing), now);
  const auto waiting = waits_.find(id);
  if (waiting != waits_.end() && waiting->second.missing.empty()) succeed(waiting);
}

void StoreTable::join(int rank, const StoreMessage& request, Time now) {
  const uint64_t id = wait(rank, request, {}, now);
  const bool all = std::ranges::none_of(
      members_, [](const Member& one) { return one.standing == Standing::kNeverCame; });
  const auto waiting = waits_.find(id);
  if (waiting == waits_.end()) return;
  joins_.insert(id);
  if (all) succeed(waiting);
}

void StoreTable::barrier(int rank, const StoreMessage& request, Time now) {
  const auto& name = request.texts[0];
  const auto others = barriers_.find(name);
  if (others != barriers_.end() && others->second.contains(rank)) {
    return answer(rank, request.id, StoreStatus::kDistError,
                  fmt::format("[store] {} is at barrier \"{}\" already. Give each barrier a name "
                              "of its own.",
                              describe(rank), name));
  }
  for (size_t other = 0; other < members_.size(); ++other) {
    if (members_[other].standing != Standing::kLeft) continue;
    return answer(rank, request.id, StoreStatus::kPeerLostError,
                  fmt::format("[store] barrier \"{}\" cannot be complete: {} has left the job.",
                              name, describe(static_cast<int>(other))));
  }
  const uint64_t id = wait(rank, request, {}, now);
  if (!waits_.contains(id)) return;
  auto& came = barriers_[name];
  came[rank] = id;
  if (came.size() < members_.size()) return;
  for (const auto& [each, its_wait] : std::map(came)) succeed(waits_.find(its_wait));
}

uint64_t StoreTable::wait(int rank, const StoreMessage& request, std::vector<std::string> missing,
                          Time now) {
  const uint64_t id = next_wait_++;
  const bool for_keys = request.kind == Kind::kGet || request.kind == Kind::kWait;
  if (failure_ && !(for_keys && missing.empty())) {
    answer(rank, request.id, StoreStatus::kPeerLostError,
           "[store] the job has failed: " + failure_->text);
    return id;
  }
  // A year: longer than any job, and small enough to be added to a time point.
  const int64_t most = std::chrono::milliseconds(std::chrono::hours(24 * 365)).count();
  const Time deadline =
      now + std::chrono::milliseconds(std::clamp<int64_t>(request.numbers[0], 0, most));
  for (const std::string& key : missing) waits_for_key_[key].insert(id);
  deadlines_.emplace(deadline, id);
  waits_.emplace(id, Wait{rank, request, std::move(missing), deadline});
  return id;
}

StoreTable::Wait StoreTable::end(Waits::iterator found) {
  const uint64_t id = found->first;
  Wait wait = std::move(found->second);
  waits_.erase(found);
  deadlines_.erase({wait.deadline, id});
  for (const std::string& key : wait.missing) {
    const auto waiting = waits_for_key_.find(key);
    waiting->second.erase(id);
    if (waiting->second.empty()) waits_for_key_.erase(waiting);
  }
  joins_.erase(id);
  if (wait.request.kind == Kind::kBarrier) {
    const auto came = barriers_.find(wait.request.texts[0]);
    came->second.erase(wait.rank);
    if (came->second.empty()) barriers_.erase(came);
  }
  return wait;
}

void StoreTable::succeed(Waits::iterator found) {
  const Wait wait = end(found);
  const bool gets = wait.request.kind == Kind::kGet;
  answer(wait.rank, wait.request.id, StoreStatus::kOk,
         gets ? values_.at(wait.request.texts[0]) : std::string());
}

std::optional<StoreTable::Time> StoreTable::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

void StoreTable::expire(Time now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const auto found = waits_.find(deadlines_.begin()->second);
    const std::string text = timeout_text(found->second);
    const Wait wait = end(found);
    answer(wait.rank, wait.request.id, StoreStatus::kTimeoutError, text);
  }
}

std::string StoreTable::timeout_text(const Wait& wait) const {
  const double seconds = static_cast<double>(wait.request.numbers[0]) / 1000;
  std::string text;
  std::string barrier;
  if (wait.request.kind == Kind::kJoin) {
    text = fmt::format("[store] not all {} ranks joined the job within {:.3g} s.", members_.size(),
                       seconds);
  } else if (wait.request.kind == Kind::kBarrier) {
    barrier = wait.request.texts[0];
    text = fmt::format("[store] barrier \"{}\": {} of {} ranks came within {:.3g} s.", barrier,
                       barriers_.at(barrier).size(), members_.size(), seconds);
  } else {
    text = fmt::format("[store] nobody set {} within {:.3g} s.", quoted(wait.missing), seconds);
  }
  text += absent_ranks(barrier);
  if (!refused_.empty()) text += fmt::format(" Besides, {}", fmt::join(refused_, " And "));
  return text;
}

std::string StoreTable::absent_ranks(const std::string& barrier) const {
  std::vector<int> never_came;
  std::vector<std::string> elsewhere;
  const auto at_barrier = barriers_.find(barrier);
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank) {
    if (standing(rank) == Standing::kNeverCame) never_came.push_back(rank);
    if (standing(rank) == Standing::kLost) elsewhere.push_back(describe(rank) + " is lost");
    if (standing(rank) == Standing::kLeft) elsewhere.push_back(describe(rank) + " has left");
    if (standing(rank) == Standing::kHere && at_barrier != barriers_.end() &&
        !at_barrier->second.contains(rank)) {
      elsewhere.push_back(describe(rank) + " is connected but has not come");
    }
  }
  std::string text;
  if (!never_came.empty()) text += fmt::format(" Never connected: {}.", rank_list(never_came));
  const size_t more = elsewhere.size() > kNamesInText ? elsewhere.size() - kNamesInText : 0;
  elsewhere.resize(elsewhere.size() - more);
  if (more > 0) elsewhere.push_back(fmt::format("{} more so", more));
  if (!elsewhere.empty()) text += fmt::format(" {}.", fmt::join(elsewhere, ", "));
  return text;
}

}  // namespace lockstep::dist
