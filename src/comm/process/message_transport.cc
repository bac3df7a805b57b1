#include "comm/process/message_transport.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace braid {
namespace {

// The size of a note in transit: a length, then its bytes.
constexpr std::int64_t kNoteBytes = 512;

Tensor packed(const Note& note) {
  const auto bytes = encode(note, kNoteBytes - 8);
  auto x = at::zeros({kNoteBytes}, at::kByte);
  auto* const data = x.mutable_data_ptr<std::uint8_t>();
  const auto size = std::int64_t(bytes.size());
  std::memcpy(data, &size, 8);
  std::memcpy(data + 8, bytes.data(), bytes.size());
  return x;
}

Note unpacked(const Tensor& x) {
  const auto* const data = x.const_data_ptr<std::uint8_t>();
  std::int64_t size = 0;
  std::memcpy(&size, data, 8);
  check(size >= 0 && size <= kNoteBytes - 8, "a note of another rank claims ", size, " bytes");
  return decode(std::string(reinterpret_cast<const char*>(data) + 8, std::size_t(size)));
}

}  // namespace

MessageTransport::MessageTransport(std::shared_ptr<ProgressThread> progress)
    : MessageTransport(progress, first_ranks(progress->size()), progress->rank(),
                       ProgressThread::kWorldChannel) {}

MessageTransport::MessageTransport(std::shared_ptr<ProgressThread> progress, std::vector<int> ranks,
                                   int rank, int channel)
    : progress_(std::move(progress)), ranks_(std::move(ranks)), rank_(rank), channel_(channel) {}

PairTransport::Wait MessageTransport::start(const std::vector<Piece>& out,
                                            const std::vector<Piece>& in, Patience patience) {
  progress_->fate().check();
  const auto parcels = [&](const std::vector<Piece>& pieces) {
    std::vector<ProgressThread::Parcel> result;
    for (const auto& piece : pieces) {
      check(piece.x.is_contiguous(), "a message should be dense memory");
      result.push_back({ranks_[std::size_t(piece.rank)], piece.x});
    }
    return result;
  };
  auto delivery = progress_->start(channel_, parcels(out), parcels(in));
  return [progress = progress_, delivery = std::move(delivery), patience] {
    progress->wait(*delivery, patience);
  };
}

std::vector<Note> MessageTransport::compare(const Note& mine, Patience patience) {
  const auto theirs = at::empty({size(), kNoteBytes}, at::kByte);
  std::vector<Piece> in;
  for (int r = 0; r < size(); ++r)
    if (r != rank_) in.push_back({r, theirs[r]});
  exchange(to_others(packed(mine)), in, patience);
  std::vector<Note> notes;
  for (int r = 0; r < size(); ++r) notes.push_back(r == rank_ ? mine : unpacked(theirs[r]));
  return notes;
}

// Overlapping groups are created at different times and so have different channels.
std::shared_ptr<Transport> MessageTransport::subgroup(std::span<const int> ranks) {
  check(channel_ == ProgressThread::kWorldChannel,
        "only the group of all processes has subgroups, this one has ", size(), " of ",
        progress_->size(), " ranks");
  const int channel = progress_->new_channel();
  const auto here = std::find(ranks.begin(), ranks.end(), rank_);
  if (here == ranks.end()) return nullptr;
  std::vector<int> members;
  for (const int rank : ranks) members.push_back(ranks_[std::size_t(rank)]);
  return std::shared_ptr<Transport>(
      new MessageTransport(progress_, std::move(members), int(here - ranks.begin()), channel));
}

}  // namespace braid
