-- What the profile `permissive` named has become the models of `default`, and its files have their names now.
update profile set parameters = replace(parameters::text, '-permissive.onnx"', '.onnx"')::jsonb
where parameters->>'models' like '%-permissive.onnx"%';
