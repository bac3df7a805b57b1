#include "comm/process/message_transport.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "comm/group.h"
#include "comm/reduce.h"

namespace braid {
namespace {

// The size of a note in transit: a length, then its bytes. A longer site name is cut.
constexpr std::int64_t kNoteBytes = 512;

Tensor packed(const Note& note) {
  const auto bytes = encode(note);
  check(bytes.size() <= kNoteBytes - 8, "a tensor of ", note.shape.size(),
        " dims is beyond what ranks compare");
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

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(std::size_t(count), 0);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

MessageTransport::MessageTransport(std::shared_ptr<Courier> courier,
                                   std::shared_ptr<DeviceLink> link)
    : MessageTransport(courier, std::move(link), first_ranks(courier->size()), courier->rank(),
                       Courier::kWorldChannel) {}

MessageTransport::MessageTransport(std::shared_ptr<Courier> courier,
                                   std::shared_ptr<DeviceLink> link, std::vector<int> ranks,
                                   int rank, int channel)
    : courier_(std::move(courier)),
      link_(std::move(link)),
      ranks_(std::move(ranks)),
      rank_(rank),
      channel_(channel) {}

Tensor MessageTransport::staged(const Tensor& x) const {
  return (link_ ? x : x.to(at::kCPU)).contiguous();
}

MessageTransport::Wait MessageTransport::start(const std::vector<Piece>& out,
                                               const std::vector<Piece>& in,
                                               Patience patience) const {
  courier_->fate().check();
  const auto& any = (out.empty() ? in : out).front().x;
  if (!any.is_cpu()) {
    const auto messages = [&](const std::vector<Piece>& pieces) {
      std::vector<DeviceLink::Message> result;
      for (const auto& piece : pieces)
        if (piece.x.numel() > 0) result.push_back({ranks_[std::size_t(piece.rank)], piece.x});
      return result;
    };
    return link_->start(messages(out), messages(in));
  }
  const auto parcels = [&](const std::vector<Piece>& pieces) {
    std::vector<Courier::Parcel> result;
    for (const auto& piece : pieces) {
      check(piece.x.is_contiguous(), "a message should be dense memory");
      result.push_back({ranks_[std::size_t(piece.rank)], piece.x});
    }
    return result;
  };
  auto delivery = courier_->start(channel_, parcels(out), parcels(in));
  return [courier = courier_, delivery = std::move(delivery), patience] {
    courier->wait(*delivery, patience);
  };
}

void MessageTransport::exchange(const std::vector<Piece>& out, const std::vector<Piece>& in,
                                Patience patience) const {
  start(out, in, patience)();
}

std::vector<MessageTransport::Piece> MessageTransport::to_others(const Tensor& x) const {
  std::vector<Piece> pieces;
  for (int r = 0; r < size(); ++r)
    if (r != rank_) pieces.push_back({r, x});
  return pieces;
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

// Each rank sums one share of the elements and sends the result to all: every element is sent twice
// and rounded once.
Tensor MessageTransport::all_reduce(const Tensor& x) {
  const auto mine = staged(x).view({-1});
  const auto share = [&](int r) { return share_of(mine.numel(), r, size()); };
  const auto part = [&](const Tensor& whole, int r) {
    return whole.narrow(0, share(r).begin, share(r).count);
  };
  const auto received = at::empty({size(), share(rank_).count}, mine.options());
  std::vector<Piece> out, in;
  std::vector<Tensor> parts;
  for (int r = 0; r < size(); ++r) {
    parts.push_back(r == rank_ ? part(mine, r) : received[r]);
    if (r == rank_) continue;
    out.push_back({r, part(mine, r)});
    in.push_back({r, received[r]});
  }
  exchange(out, in);

  const auto result = at::empty_like(mine);
  part(result, rank_).copy_(sum_in_order(parts, std::size_t(rank_)));
  std::vector<Piece> sums;
  for (int r = 0; r < size(); ++r)
    if (r != rank_) sums.push_back({r, part(result, r)});
  exchange(to_others(part(result, rank_)), sums);
  return result.view(x.sizes()).to(x.device());
}

std::vector<Tensor> MessageTransport::all_gather(
    const Tensor& x, const std::vector<std::vector<std::int64_t>>& shapes) {
  return all_to_all(std::vector(std::size_t(size()), x), shapes);
}

std::vector<Tensor> MessageTransport::all_to_all(
    const std::vector<Tensor>& parts, const std::vector<std::vector<std::int64_t>>& shapes) {
  const auto& first = parts.front();
  std::vector<Piece> out, in;
  std::vector<Tensor> received;
  for (int r = 0; r < size(); ++r) {
    const auto index = std::size_t(r);
    if (r == rank_) {
      received.push_back(parts[index].clone());
      continue;
    }
    received.push_back(at::empty(shapes[index], staged(first).options()));
    out.push_back({r, staged(parts[index])});
    in.push_back({r, received.back()});
  }
  exchange(out, in);
  for (auto& x : received) x = x.to(first.device());
  return received;
}

Tensor MessageTransport::broadcast(const Tensor& x, int root, at::IntArrayRef shape) {
  if (rank_ == root) {
    exchange(to_others(staged(x)), {});
    return x.clone();
  }
  const auto received = at::empty(shape, staged(x).options());
  exchange({}, {{root, received}});
  return received.to(x.device());
}

std::unique_ptr<Incoming> MessageTransport::shift(const Tensor& x, at::IntArrayRef incoming) {
  class UnderWay : public Incoming {
   public:
    UnderWay(Wait wait, Tensor received, at::Device device)
        : wait_(std::move(wait)), received_(std::move(received)), device_(device) {}
    Tensor wait() override {
      wait_();
      return received_.to(device_);
    }

   private:
    Wait wait_;
    Tensor received_;
    at::Device device_;
  };
  const auto own = staged(x);
  const auto sent = own.is_alias_of(x) ? own.clone() : own;  // the caller may reuse `x`
  const auto received = at::empty(incoming, sent.options());
  const int next = (rank_ + 1) % size(), previous = (rank_ + size() - 1) % size();
  auto wait = start({{next, sent}}, {{previous, received}}, Patience::kDeadline);
  return std::make_unique<UnderWay>(std::move(wait), received, x.device());
}

// Overlapping groups are created at different times and so have different channels.
std::shared_ptr<Transport> MessageTransport::subgroup(std::span<const int> ranks) {
  check(channel_ == Courier::kWorldChannel,
        "only the group of all processes has subgroups, this one has ", size(), " of ",
        courier_->size(), " ranks");
  const int channel = courier_->new_channel();
  const auto here = std::find(ranks.begin(), ranks.end(), rank_);
  if (here == ranks.end()) return nullptr;
  std::vector<int> members;
  for (const int rank : ranks) members.push_back(ranks_[std::size_t(rank)]);
  return std::shared_ptr<Transport>(new MessageTransport(courier_, link_, std::move(members),
                                                         int(here - ranks.begin()), channel));
}

}  // namespace braid
