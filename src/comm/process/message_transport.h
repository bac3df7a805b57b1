// Messages between processes, through the hosts.
#pragma once

#include "comm/pair_transport.h"
#include "comm/process/progress_thread.h"

namespace braid {

class MessageTransport : public PairTransport {
 public:
  // The group of all ranks.
  explicit MessageTransport(std::shared_ptr<ProgressThread> progress);

  int rank() const override { return rank_; }
  int size() const override { return int(ranks_.size()); }
  const Fate& fate() const override { return progress_->fate(); }

  std::vector<Note> compare(const Note& mine, Patience patience) override;
  std::shared_ptr<Transport> subgroup(std::span<const int> ranks) override;

 private:
  MessageTransport(std::shared_ptr<ProgressThread> progress, std::vector<int> ranks, int rank,
                   int channel);
  at::Device staging_device(at::Device) const override { return at::kCPU; }
  Wait start(const std::vector<Piece>& out, const std::vector<Piece>& in,
             Patience patience) override;

  std::shared_ptr<ProgressThread> progress_;
  std::vector<int> ranks_;  // of the world
  int rank_, channel_;
};

}  // namespace braid
