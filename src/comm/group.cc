#include "comm/group.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"

namespace braid {
namespace {

constexpr int kAwait = 1;  // `detail` of a barrier without a deadline

using Shapes = std::vector<std::vector<std::int64_t>>;

std::string site_name(const Site& site) {
  const std::string file = site.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(site.line());
}

// A tensor that only points to memory, as from at::from_blob without a deleter, keeps nothing
// alive.
void check_ownership(const Tensor& x) {
  const auto& memory = x.storage().data_ptr();
  check(!memory || memory.get_context(), "a collective was given a tensor of shape ", x.sizes(),
        " that does not own its memory");
}

std::vector<std::int64_t> shape_of(const Tensor& x) { return x.sizes().vec(); }

// The shapes of what this rank receives from each rank, as told by the senders.   [from to dim]
Shapes shapes_to(int rank, const Tensor& all_shapes) {
  Shapes shapes;
  for (const auto& row : all_shapes.select(1, rank).unbind())
    shapes.emplace_back(row.const_data_ptr<std::int64_t>(),
                        row.const_data_ptr<std::int64_t>() + row.numel());
  return shapes;
}

// Cuts tensors that lie one behind another apart.
std::vector<Tensor> cut(const Tensor& flat, const Shapes& shapes) {
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (const auto& shape : shapes) {
    const auto count = c10::multiply_integers(shape);
    parts.push_back(flat.narrow(0, begin, count).view(shape));
    begin += count;
  }
  return parts;
}

// The same as one tensor; they differ in dim 0 alone.
JoinedParts joined(const Tensor& flat, const Shapes& shapes) {
  auto all = shapes.front();
  all.front() = 0;
  std::vector<std::int64_t> sizes;
  for (const auto& shape : shapes) {
    check(std::equal(shape.begin() + 1, shape.end(), all.begin() + 1, all.end()),
          "parts of shapes ", at::IntArrayRef(shapes.front()), " and ", at::IntArrayRef(shape),
          " cannot be joined");
    all.front() += shape.front();
    sizes.push_back(shape.front());
  }
  return {.x = flat.view(all), .sizes = std::move(sizes)};
}

// Copies `result` into `x`, whatever its strides. Elements that share memory (an expanded dim) can
// only take one value.
void write_back(Tensor& x, const Tensor& result) {
  auto target = x, values = result;
  for (std::int64_t d = 0; d < x.dim(); ++d) {
    if (x.stride(d) != 0 || x.size(d) <= 1) continue;
    const auto first = values.narrow(d, 0, 1);
    check(values.eq(first).all().item<bool>(), "a collective in place cannot write different ",
          "values to the expanded dim ", d, " of a tensor of shape ", x.sizes());
    target = target.narrow(d, 0, 1);
    values = first;
  }
  target.copy_(values);
}

}  // namespace

struct Group::State {
  Traffic traffic;
  std::uint64_t epoch = 0, number = 0;  // collectives of the epoch
};

Group::Group(std::shared_ptr<Transport> transport)
    : transport_(std::move(transport)),
      state_(std::make_shared<State>()),
      shares_(std::make_shared<const Shares>(transport_->size())) {}

const Shares& Group::shares() const& {
  static const Shares kOfOne;
  return shares_ ? *shares_ : kOfOne;
}

Group Group::with_shares(const Shares& shares) const {
  check(shares.size() == size(), "a group of ", size(), " ranks has shares of ", shares.size());
  auto group = *this;
  group.shares_ = std::make_shared<const Shares>(shares);
  return group;
}

// A failed run may leave the ranks with different counts.
std::uint64_t Group::next_number() const {
  const auto epoch = transport_->fate().epoch();
  if (state_->epoch != epoch) state_->number = 0;
  state_->epoch = epoch;
  return state_->number++;
}

std::vector<Note> Group::agree(Op op, const std::vector<Tensor>& xs, int detail, const Site& site,
                               Patience patience) const {
  Shapes shapes;
  std::int64_t bytes = 0;
  for (const auto& x : xs) {
    check_ownership(x);
    shapes.push_back(shape_of(x));
    bytes += x.numel() * std::int64_t(x.element_size());
  }
  const auto notes =
      transport_->compare({.op = op,
                           .dtype = xs.empty() ? at::kByte : xs.front().scalar_type(),
                           .shapes = std::move(shapes),
                           .detail = detail,
                           .number = next_number(),
                           .site = site_name(site)},
                          patience);
  check_agreement(notes);
  if (op != Op::kBroadcast || rank() == detail) state_->traffic.bytes += bytes;
  return notes;
}

namespace {

void sum_parts(const SumRun&, std::span<const Tensor> parts, const Tensor& out) {
  out.copy_(sum_in_order(parts, 0));
}

Tensor made_alone(const Tensor& x, std::size_t number, const MakeSum& make) {
  const auto dense = x.contiguous(), result = at::empty_like(dense);
  const Share all{.begin = 0, .count = x.numel()};
  const std::vector parts = {elements_of(dense, all)};
  if (all.count > 0) make({.tensor = number, .elements = all}, parts, elements_of(result, all));
  return result;
}

}  // namespace

Tensor Group::all_reduce(const Tensor& x, Site site) const {
  return size() == 1 ? x : all_reduce({x}, sum_parts, site).front();
}

std::vector<Tensor> Group::all_reduce(const std::vector<Tensor>& xs, const MakeSum& make,
                                      Site site) const {
  std::vector<Tensor> dense;
  for (const auto& x : xs) {
    check(x.scalar_type() == xs.front().scalar_type() && x.device() == xs.front().device(),
          "an all_reduce of tensors of two dtypes or devices");
    dense.push_back(size() == 1 ? made_alone(x, dense.size(), make) : x.contiguous());
  }
  if (size() == 1) return dense;
  agree(Op::kAllReduce, xs, 0, site);
  ++state_->traffic.all_reduces;
  return transport_->all_reduce(dense, make);
}

void Group::all_reduce_(Tensor& x, Site site) const {
  if (size() > 1) write_back(x, all_reduce(x, site));
}

Tensor Group::all_gather(const Tensor& x, std::int64_t dim, Site site) const {
  if (size() == 1) return x;
  check(dim >= -x.dim() && dim < x.dim(), "all_gather along dim ", dim, " of a tensor of shape ",
        x.sizes());
  if (dim < 0) dim += x.dim();
  Shapes shapes;
  for (const auto& note : agree(Op::kAllGather, {x}, int(dim), site))
    shapes.push_back(note.shapes.front());
  ++state_->traffic.all_gathers;
  const auto all = transport_->all_gather(x.contiguous(), shapes);
  return dim == 0 ? joined(all, shapes).x : at::cat(cut(all, shapes), dim);
}

// What this rank receives, flat, and the shapes of its parts.
Group::Received Group::trade(const std::vector<Tensor>& parts, const Site& site) const {
  const auto dims = parts.front().dim();
  auto shapes = at::zeros({size(), dims}, at::kLong);
  std::int64_t bytes = 0;
  for (int r = 0; r < size(); ++r) {
    const auto& part = parts[std::size_t(r)];
    check_ownership(part);
    check(part.dim() == dims && part.scalar_type() == parts.front().scalar_type(),
          "all_to_all was given parts of different dtypes or numbers of dims");
    shapes[r].copy_(at::tensor(shape_of(part), at::kLong));
    bytes += part.numel() * part.element_size();
  }
  (void)agree(Op::kAllToAll, {parts.front()}, int(dims), site);
  const Shapes same(std::size_t(size()), {size(), dims});
  const auto all_shapes = transport_->all_gather(shapes, same).view({size(), size(), dims});
  std::vector<Tensor> dense;
  for (const auto& part : parts) dense.push_back(part.contiguous());
  state_->traffic.bytes += bytes - parts.front().numel() * parts.front().element_size();
  ++state_->traffic.all_to_alls;
  auto mine = shapes_to(rank(), all_shapes);
  auto flat = transport_->all_to_all(dense, mine);
  return {.flat = std::move(flat), .shapes = std::move(mine)};
}

std::vector<Tensor> Group::all_to_all(const std::vector<Tensor>& parts, Site site) const {
  check(int(parts.size()) == size(), "all_to_all over ", size(), " ranks was given ", parts.size(),
        " parts");
  if (size() == 1) return parts;
  const auto received = trade(parts, site);
  return cut(received.flat, received.shapes);
}

JoinedParts Group::all_to_all_joined(const std::vector<Tensor>& parts, Site site) const {
  check(int(parts.size()) == size(), "all_to_all over ", size(), " ranks was given ", parts.size(),
        " parts");
  if (size() == 1) return {.x = parts.front(), .sizes = {parts.front().size(0)}};
  const auto received = trade(parts, site);
  return joined(received.flat, received.shapes);
}

Tensor Group::broadcast(const Tensor& x, int root, Site site) const {
  check(root >= 0 && root < size(), "broadcast from rank ", root, " of ", size());
  if (size() == 1) return x;
  const auto notes = agree(Op::kBroadcast, {x}, root, site);
  ++state_->traffic.broadcasts;
  return transport_->broadcast(x.contiguous(), root, notes[std::size_t(root)].shapes.front());
}

void Group::broadcast_(Tensor& x, int root, Site site) const {
  if (size() == 1) return;
  const auto received = broadcast(x, root, site);
  check(received.sizes() == x.sizes(), "broadcast in place: rank ", rank(), " has the shape ",
        x.sizes(), ", rank ", root, " sends ", received.sizes());
  write_back(x, received);
}

std::unique_ptr<Incoming> Group::ring_shift(const Tensor& x, Site site) const {
  class Mine : public Incoming {
   public:
    explicit Mine(Tensor x) : x_(std::move(x)) {}
    Tensor wait() override { return x_; }

   private:
    Tensor x_;
  };
  if (size() == 1) return std::make_unique<Mine>(x);
  const auto notes = agree(Op::kShift, {x}, 0, site);
  ++state_->traffic.shifts;
  const auto previous = std::size_t((rank() + size() - 1) % size());
  return transport_->shift(x.contiguous(), notes[previous].shapes.front());
}

void Group::barrier(Site site) const {
  if (size() > 1) agree(Op::kBarrier, {}, 0, site);
}

Group Group::subgroup(std::span<const int> ranks) const {
  if (!transport_) return {};
  auto transport = transport_->subgroup(ranks);
  return transport && transport->size() > 1 ? Group(std::move(transport)) : Group();
}

void Group::await(Site site) const {
  if (size() > 1) agree(Op::kBarrier, {}, kAwait, site, Patience::kEndless);
}

const Traffic& Group::traffic() const {
  static const Traffic kNone;
  return state_ ? state_->traffic : kNone;
}

namespace {

// FNV-1a: guards against mistakes, not against malice.
std::int64_t hash_of(const Tensor& x) {
  const auto dense = x.to(at::kCPU).contiguous();
  const auto* const bytes = static_cast<const unsigned char*>(dense.const_data_ptr());
  const auto count = std::size_t(dense.numel()) * dense.element_size();
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return std::int64_t(hash);
}

}  // namespace

void check_same(const Group& group, const Tensor& x, const std::string& what) {
  if (group.size() == 1) return;
  const auto hashes = group.all_gather(at::full({1}, hash_of(x), at::kLong), 0);
  for (int rank = 1; rank < group.size(); ++rank)
    check(hashes[rank].item<std::int64_t>() == hashes[0].item<std::int64_t>(), "the ranks have ",
          "different ", what, ": rank ", rank, " differs from rank 0");
}

Share share_of(std::int64_t total, const Group& group) {
  return share_of(total, group.rank(), group.shares());
}

Tensor take_share(const Tensor& x, std::int64_t dim, const Group& group) {
  const auto share = share_of(x.size(dim), group);
  return x.narrow(dim, share.begin, share.count);
}

}  // namespace braid
