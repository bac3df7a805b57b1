#include "weights/weights.h"

namespace braid {

// State shared by the scopes of one load.
struct Weights::Load {
  LoadOptions options;
  ShardingTable shardings;
  std::shared_ptr<Scratch> scratch = std::make_shared<Scratch>();
  std::shared_ptr<Scratch> second_scratch = std::make_shared<Scratch>();
  std::shared_ptr<Upload> upload = {};  // to a GPU

  Shard shard_of(const std::string& layer, at::IntArrayRef shape) const;
  void has_read(const BytesRead& read) const;
  void has_passed(std::int64_t bytes) const;
};

// This rank's share of a tensor of `layer`. A row-parallel layer's vector, its bias, is whole: it
// belongs to the sum.
Shard Weights::Load::shard_of(const std::string& layer, at::IntArrayRef shape) const {
  const auto rows = shape.empty() ? 1 : shape[0];
  const auto& group = options.tensor_parallel;
  const auto* const sharding = find_sharding(shardings, layer);
  if (!sharding || group.size() == 1) return {.rows = {{.begin = 0, .count = rows}}};
  const auto share = [&](std::int64_t total) {
    return shares_of(*sharding, total, group.rank(), group.shares(), layer);
  };
  if (sharding->split == Split::kColumns) return {.rows = share(rows)};
  return {.rows = {{.begin = 0, .count = rows}},
          .columns = shape.size() < 2 ? std::vector<Share>() : share(shape[1])};
}

void Weights::Load::has_read(const BytesRead& read) const {
  if (options.on_read) options.on_read(read);
  has_passed(read.all);
}

void Weights::Load::has_passed(std::int64_t bytes) const {
  if (options.on_bytes) options.on_bytes(bytes);
}

Weights::Weights(std::shared_ptr<TensorSource> source, LoadOptions options, ShardingTable shardings)
    : load_(std::make_shared<Load>(Load{std::move(options), std::move(shardings)})),
      source_(std::move(source)),
      dtype_(load_->options.dtype) {
  if (!device().is_cpu()) load_->upload = std::make_shared<Upload>(device());
  if (load_->options.paging.pages) *this = paged(PageLevel::kModel, source_->name());
}

Weights::Weights(Checkpoint checkpoint, Names names, LoadOptions options, ShardingTable shardings)
    : Weights(stored_tensors(std::move(checkpoint), std::move(names)), std::move(options),
              std::move(shardings)) {}

Weights Weights::synthetic(LoadOptions options, ShardingTable shardings) {
  return {synthetic_tensors(), std::move(options), std::move(shardings)};
}

Weights Weights::operator/(std::string_view child) const {
  auto inner = *this;
  inner.scope_ = path(child);
  return inner;
}

Weights Weights::operator/(std::int64_t index) const { return *this / std::to_string(index); }

Weights Weights::as(at::ScalarType dtype) const {
  auto other = *this;
  other.dtype_ = dtype;
  return other;
}

Weights Weights::paged(PageLevel level, const std::string& name, int blocks) const {
  auto inner = *this;
  inner.page_ = {};
  if (level == PageLevel::kLeaf) inner.leaf_ = path(name);
  if (level == PageLevel::kBlock) inner.is_in_block_ = true;
  const auto& paging = load_->options.paging;
  if (!paging.pages || paging.level != level) return inner;
  const auto group = path(name) + (use_ == PageUse::kOnce ? " (once)" : "");
  inner.page_ = Page(paging.pages, paging.pages->add_group(group, use_, blocks));
  inner.goes_to_page_ = true;
  return inner;
}

std::int64_t Weights::blocks_per_page() const {
  const auto& paging = load_->options.paging;
  return paging.pages && paging.level == PageLevel::kBlock ? paging.blocks : 1;
}

// The page builds its tensors when it is closed, unless it is on disk.
Matrix Weights::delivered_to_page(const TensorPlan& plan) const {
  const auto& options = load_->options;
  const auto kept = kept_tensors(plan);
  const auto make_tensors = [plan, kept, on_read = options.on_read] {
    auto made = make(plan, at::kCPU);
    if (on_read) on_read(made.read);
    std::vector<Tensor> tensors;
    for (const auto& tensor : kept) tensors.push_back(tensor_of(made.matrix, tensor.which));
    return tensors;
  };
  const auto done = [bytes = bytes_read_by(plan), on_bytes = options.on_bytes] {
    if (on_bytes) on_bytes(bytes);
  };
  const auto views = options.paging.pages->add({.tensors = forms_of(plan),
                                                .identity = [plan] { return identity_of(plan); },
                                                .make = make_tensors,
                                                .done = done});
  Matrix matrix{.form = plan.form, .coding = coding_of(plan)};
  for (std::size_t i = 0; i < kept.size(); ++i) tensor_of(matrix, kept[i].which) = views[i];
  return matrix;
}

Matrix Weights::delivered(const TensorPlan& plan) const {
  if (goes_to_page_) return delivered_to_page(plan);
  if (device().is_cpu() && is_in_place(plan)) {
    const auto view = view_of(ranges_of(plan.stored(), plan.shard.rows).front());
    load_->has_read({.all = bytes_read_by(plan)});
    return {.values_NC = view};
  }
  const Target target(device(), load_->upload.get());
  const auto made = make(plan, target);
  load_->has_read(made.read);
  return map_tensors(made.matrix, [&](const Tensor& x) { return moved(x, target); });
}

// Unread tensors need no pages.
Weights Weights::unread_from(std::shared_ptr<TensorSource> source) const {
  auto other = *this;
  other.load_ = std::make_shared<Load>(*load_);
  other.load_->options.paging = {};
  other.goes_to_page_ = false;
  other.page_ = {};
  other.source_ = std::move(source);
  return other;
}

Weights Weights::unread() const { return unread_from(unread_tensors(source_)); }

Weights Weights::once() const {
  auto other = *this;
  other.use_ = PageUse::kOnce;
  return other;
}

Weights Weights::surveyed(std::vector<SurveyedTensor>& asked) const {
  return unread_from(surveyed_tensors(source_, asked));
}

std::string Weights::path(std::string_view name) const {
  return scope_.empty() ? std::string(name) : scope_ + "." + std::string(name);
}

std::optional<TensorPlan> Weights::find(std::string_view name, at::IntArrayRef shape,
                                        TensorRequest::Kind kind) const {
  const auto& options = load_->options;
  return source_->find({.layer = scope_,
                        .name = std::string(name),
                        .shape = shape.vec(),
                        .dtype = dtype_,
                        .kind = kind,
                        .use = use_,
                        .leaf = leaf_,
                        .is_in_block = is_in_block_,
                        .shard = load_->shard_of(scope_, shape),
                        .quantize = options.quantize,
                        .stays_dense = matches_any(options.keep_dense, scope_),
                        .stored_codes = options.stored_codes});
}

Tensor Weights::tensor(std::string_view name, at::IntArrayRef shape) const {
  const auto plan = find(name, shape, TensorRequest::Kind::kNumbers);
  return plan ? delivered(*plan).values_NC : Tensor();
}

Matrix Weights::matrix(std::string_view name, at::IntArrayRef shape) const {
  const auto plan = find(name, shape, TensorRequest::Kind::kMatrix);
  if (!plan) return {};
  auto matrix = delivered(*plan);
  matrix.low_rank = plan->low_rank;
  return matrix;
}

Tensor Weights::table(std::string_view name, at::IntArrayRef shape) const {
  const auto plan = find(name, shape, TensorRequest::Kind::kTable);
  if (!plan) return {};
  load_->has_read({.all = bytes_read_by(*plan)});
  return make_table(*plan, device());
}

at::Device Weights::device() const { return load_->options.device; }
bool Weights::wants_unused() const { return load_->options.wants_unused; }

Weights Weights::on_second_stream() const {
  auto other = *this;
  other.is_on_second_stream_ = second_stream().has_value();
  return other;
}

const std::optional<c10::Stream>& Weights::second_stream() const {
  return load_->options.second_stream;
}

std::shared_ptr<Scratch> Weights::scratch() const {
  return is_on_second_stream_ ? load_->second_scratch : load_->scratch;
}

Outputs Weights::outputs() const {
  const auto& group = load_->options.tensor_parallel;
  const auto* const sharding = find_sharding(load_->shardings, scope_);
  if (!sharding || group.size() == 1) return {};
  return {.are = sharding->outputs, .group = group};
}

void Weights::skip() const { load_->has_passed(source_->skip(scope_)); }

void Weights::finish() const { load_->has_passed(source_->finish()); }

}  // namespace braid
