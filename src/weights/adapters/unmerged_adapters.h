// Adapters applied beside one part's weights; they may be switched while it is loaded.
#pragma once

#include <exception>
#include <memory>
#include <set>
#include <vector>

#include "weights/adapters/adapted_part.h"

namespace braid {

class UnmergedAdapters {
 public:
  UnmergedAdapters(AdaptedPart part, at::Device device) : part_(std::move(part)), device_(device) {}

  const AdaptedPart& part() const { return part_; }

  // Registers a weight being loaded, without products yet. If nobody keeps the result, the weight
  // is another rank's; its adapters are still checked here.
  std::shared_ptr<const LowRank> add(const TensorRequest& request);

  // Registers a tensor being loaded that takes no products, such as a bias, a norm or a
  // convolution: adapters of requests may not change it.
  void watch(const TensorRequest& other) { fused_only_.push_back(other); }

  // Replaces the current adapters. Throws InputError, leaving them in place, for an adapter that
  // does not fit or is more than low-rank products.
  void apply(const std::vector<AppliedAdapter>& adapters);

  // Applies adapters between two requests; everything that they change must be here. The last few
  // sets of adapters are kept. `warn` hears of tensors that the part lacks, each time.
  void switch_to(const std::vector<AppliedAdapter>& adapters,
                 const std::function<void(const std::string&)>& warn = {});
  // Runs the part of switch_to() that can fail, but leaves the current adapters in place: a model's
  // parts all prepare before the first one switches.
  void prepare(const std::vector<AppliedAdapter>& adapters,
               const std::function<void(const std::string&)>& warn = {});
  // Tells what prepare() told of these adapters, if they are still kept.
  void warn_again(const std::vector<AppliedAdapter>& adapters,
                  const std::function<void(const std::string&)>& warn) const;

 private:
  struct Place {
    TensorRequest request;
    std::weak_ptr<LowRank> low_rank;
  };
  // What adapters put beside one weight, and the tensors they used.
  struct Made {
    LowRank low_rank;
    UsedTensors used;
    std::exception_ptr error;  // if they do not fit
  };
  Made made_for(const Place& place, const PartAdapters& adapters) const;
  Made made_or_error(const Place& place, const PartAdapters& adapters) const;
  LowRank product_of(const Change& change, const Place& place) const;
  std::vector<LowRank> made(const std::vector<AppliedAdapter>& adapters, UsedTensors& used) const;
  void put(const std::vector<LowRank>& products);
  void check_switchable(const AppliedAdapter& adapter, const std::set<std::string>& used) const;

  const AdaptedPart part_;
  const at::Device device_;
  std::vector<Place> places_;
  std::vector<TensorRequest> fused_only_;
  struct Kept {
    std::vector<AppliedAdapter> adapters;
    std::vector<LowRank> products;  // by place
    std::vector<std::string> warnings;
  };
  std::vector<Kept> kept_;  // most recently used first
};

}  // namespace braid
