-- The index stands in while a mirror reads its vectors. What comes from now on is put into it at two thirds of the
-- cost, and searches of it are broader; what is in it stays as it is (docs/decisions/0009-vector-at-scale.md).
alter index memory_embedding set (ef_construction = 64);
