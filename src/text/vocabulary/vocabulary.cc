#include "text/vocabulary/vocabulary.h"

#include <algorithm>
#include <functional>

namespace braid::text {
namespace {

std::uint32_t hash_of(std::string_view token) {
  const auto hash = std::hash<std::string_view>{}(token);
  return std::uint32_t(hash ^ hash >> 32);
}

}  // namespace

std::size_t Vocabulary::slot_of(std::string_view token, std::uint32_t hash) const {
  const auto mask = slots_.size() - 1;
  for (auto slot = hash & mask;; slot = (slot + 1) & mask) {
    if (slots_[slot] == 0) return slot;
    const auto& entry = entries_[slots_[slot] - 1];
    if (entry.hash == hash && std::string_view(bytes_).substr(entry.begin, entry.size) == token)
      return slot;
  }
}

void Vocabulary::grow() {
  slots_.assign(std::max<std::size_t>(2 * slots_.size(), 64), 0);
  const auto mask = slots_.size() - 1;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    auto slot = entries_[i].hash & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = std::uint32_t(i + 1);
  }
}

void Vocabulary::append(std::string_view token, std::uint32_t hash, std::int64_t id) {
  entries_.push_back({bytes_.size(), std::uint32_t(token.size()), hash, std::uint32_t(id)});
  bytes_ += token;
  end_id_ = std::max(end_id_, id + 1);
}

bool Vocabulary::insert(std::string_view token, std::int64_t id) {
  if (2 * (entries_.size() + 1) > slots_.size()) grow();
  const auto hash = hash_of(token);
  const auto slot = slot_of(token, hash);
  if (slots_[slot] != 0) return false;
  append(token, hash, id);
  slots_[slot] = std::uint32_t(entries_.size());
  return true;
}

void Vocabulary::insert_or_assign(std::string_view token, std::int64_t id) {
  if (insert(token, id)) return;
  entries_[slots_[slot_of(token, hash_of(token))] - 1].id = std::uint32_t(id);
  end_id_ = std::max(end_id_, id + 1);
}

std::optional<std::int64_t> Vocabulary::find(std::string_view token) const {
  if (slots_.empty()) return {};
  const auto slot = slots_[slot_of(token, hash_of(token))];
  return slot == 0 ? std::nullopt : std::optional<std::int64_t>(entries_[slot - 1].id);
}

}  // namespace braid::text
