// The Base-(k+1) Graph (Takezawa et al., "Beyond Exponential Graph", NeurIPS 2023, arXiv
// 2305.11420): exact consensus of any number of workers in finitely many rounds, with at most k
// peers each per round. Built from three parts:
//
//   hyper-hypercube H_k(n)   n a product of factors <= k + 1: one digit of the worker's number per
//                            round averages; exact after as many rounds as factors.
//   simple graph(n)          n in base k + 1 is a_1·B^p_1 + … + a_L·B^p_L; set V_l has a_l blocks
//   of
//                            B^p_l workers.
//     1. H_k inside every V_l (m_1 rounds): all of V_l agree on their average.
//     2. Round l of L − 1: each worker of the later sets takes weight |V_l| / (a_l · (|V_l| + … +
//        |V_L|)) from one worker in each block of V_l and gives as much. Afterwards every block of
//        V_l has the global mean, and so have the later sets together.
//     3. H_k inside every block, from the round after its exchange on.
//     Rounds: m_1 for L = 1, else m_1 + 1 + p_1. Sets that wait go on with H_k, which changes
//     nothing among equals and mixes what training adds.
//   base graph(n)            n = p·q: the simple graph inside p runs of q consecutive workers, then
//                            H_k over p; p is the divisor that needs fewest rounds.
#pragma once

#include <cstdint>
#include <vector>

namespace starling::topology {

class BaseGraph {
 public:
  // Requires: workers >= 1, peers >= 1.
  BaseGraph(std::uint32_t workers, std::uint32_t peers);

  std::uint32_t workers() const { return runs_ * simple_.workers; }
  // 0 for one worker.
  std::uint32_t rounds() const;

  // What a worker does in a round: it averages uniformly in a group of `size` workers `stride`
  // apart, or exchanges at `weight` with `size` workers `stride` apart.
  struct Move {
    bool exchange = false;
    std::uint32_t first = 0;
    std::uint32_t stride = 1;
    std::uint32_t size = 1;
    double weight = 0;
  };
  Move move(std::uint32_t round, std::uint32_t worker) const;

 private:
  struct Set {
    std::uint32_t begin = 0;
    std::uint32_t blocks = 1;      // a_l
    std::uint32_t block_size = 1;  // B^p_l
    std::uint32_t digits = 0;      // p_l
  };
  struct Simple {
    std::uint32_t workers = 1;
    std::uint32_t base = 2;
    std::vector<Set> sets;
    std::uint32_t first_rounds = 0;  // m_1
    std::uint32_t rounds = 0;
  };
  static Simple simple_graph(std::uint32_t workers, std::uint32_t peers);
  static Move hypercube_move(const Set& set, std::uint32_t base, std::uint32_t digit,
                             std::uint32_t worker);
  static Move simple_move(const Simple& graph, std::uint32_t round, std::uint32_t worker);
  static Move exchange_move(const Simple& graph, std::size_t hub, std::uint32_t worker);

  Simple simple_;
  std::uint32_t runs_ = 1;                  // p
  std::vector<std::uint32_t> run_factors_;  // of H_k over the runs
};

}  // namespace starling::topology
