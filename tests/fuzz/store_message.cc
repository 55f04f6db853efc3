#include "dist/rendezvous/store_message.h"

#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

Outcome fuzz_store_message(Input input) {
  const std::string bytes = text_of(input);
  const std::optional<dist::StoreMessage> message = dist::decode(bytes);
  if (!message) return Outcome::kRefused;
  require(dist::encode(*message).substr(sizeof(uint32_t)) == bytes,
          "a message that is accepted is encoded to the same bytes");
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
